//! The few system calls of the measuring loop, each as a function that cannot be misused.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use serde::Serialize;

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// A new non-blocking TCP socket. `at_once`: with TCP_NODELAY.
pub fn socket(target: &SocketAddr, at_once: bool) -> io::Result<OwnedFd> {
    let family = if target.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: a plain call; the descriptor is owned at once.
    let socket = unsafe { OwnedFd::from_raw_fd(checked(libc::socket(family, kind, 0))?) };
    if at_once {
        let on: libc::c_int = 1;
        set(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_NODELAY,
            &on,
        )?;
    }
    Ok(socket)
}

/// The other side's end of a connection that is closed now is not waited for: no TIME_WAIT is
/// left of it, which would keep its local port for a minute.
pub fn forget(fd: RawFd) -> io::Result<()> {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    set(fd, libc::SOL_SOCKET, libc::SO_LINGER, &linger)
}

fn set<T>(fd: RawFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value lives through the call and its size is given.
    checked(unsafe { libc::setsockopt(fd, level, name, std::ptr::from_ref(value).cast(), size) })
        .map(|_| ())
}

/// Begins to connect: None where the connection is open, else why not yet or not at all.
/// EINPROGRESS the first time and EALREADY later mean not yet. On loopback the first call usually
/// opens it, and only the second says so.
pub fn connect(fd: RawFd, target: &SocketAddr) -> Option<io::Error> {
    let result = match target {
        SocketAddr::V4(v4) => {
            let address = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from(*v4.ip()).to_be(),
                },
                sin_zero: [0; 8],
            };
            let size = size_of_val(&address) as libc::socklen_t;
            // SAFETY: the address lives through the call and its size is given.
            unsafe { libc::connect(fd, (&raw const address).cast(), size) }
        }
        SocketAddr::V6(v6) => {
            let address = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: v6.ip().octets(),
                },
                sin6_scope_id: v6.scope_id(),
            };
            let size = size_of_val(&address) as libc::socklen_t;
            // SAFETY: as above.
            unsafe { libc::connect(fd, (&raw const address).cast(), size) }
        }
    };
    checked(result).err()
}

/// How a pending `connect` ended: None where it succeeded.
pub fn connect_result(fd: RawFd) -> Option<io::Error> {
    let mut code: libc::c_int = 0;
    let mut size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `code` and `size` live through the call.
    let result = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            (&raw mut code).cast(),
            &mut size,
        )
    };
    match checked(result) {
        Err(error) => Some(error),
        Ok(_) if code != 0 => Some(io::Error::from_raw_os_error(code)),
        Ok(_) => None,
    }
}

/// Hands bytes to the kernel; never blocks, never raises SIGPIPE.
///
/// Not by way of `send`: in a process of several threads the C library makes it a point where a
/// thread can be cancelled, which costs a fifth of what a request takes outside the kernel.
#[inline]
pub fn send(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: reads `len` bytes of a valid slice.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_sendto,
            fd,
            bytes.as_ptr(),
            bytes.len(),
            libc::MSG_NOSIGNAL,
            std::ptr::null::<libc::sockaddr>(),
            0,
        )
    };
    if sent < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(sent as usize)
    }
}

/// Takes what has arrived; never blocks; 0 at the end of the connection. Not by way of `recv`, as
/// above.
#[inline]
pub fn receive(fd: RawFd, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: writes at most `len` bytes into a valid slice.
    let got = unsafe {
        libc::syscall(
            libc::SYS_recvfrom,
            fd,
            into.as_mut_ptr(),
            into.len(),
            0,
            std::ptr::null_mut::<libc::sockaddr>(),
            std::ptr::null_mut::<libc::socklen_t>(),
        )
    };
    if got < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(got as usize)
    }
}

/// Waits until `fd` or `also` is ready for `events`; true if it is `fd`.
pub fn poll_either(fd: RawFd, events: i16, also: RawFd, timeout_ms: i32) -> io::Result<bool> {
    let mut both = [
        libc::pollfd {
            fd,
            events,
            revents: 0,
        },
        libc::pollfd {
            fd: also,
            events: libc::POLLIN,
            revents: 0,
        },
    ];
    // SAFETY: two valid entries.
    checked(unsafe { libc::poll(both.as_mut_ptr(), 2, timeout_ms) })?;
    Ok(both[1].revents == 0 && both[0].revents != 0)
}

/// A flag that wakes every thread that waits on it, and stays raised.
pub struct StopFlag(OwnedFd);

impl StopFlag {
    pub fn new() -> io::Result<StopFlag> {
        // SAFETY: a plain call; the descriptor is owned at once.
        let fd = checked(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        Ok(StopFlag(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub fn raise(&self) {
        let one: u64 = 1;
        // SAFETY: writes the eight bytes of `one`. It can only fail when already raised.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    pub fn is_raised(&self) -> bool {
        let mut entry = libc::pollfd {
            fd: self.fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one valid entry; does not wait.
        unsafe { libc::poll(&mut entry, 1, 0) > 0 }
    }

    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

pub struct Epoll(OwnedFd);

impl Epoll {
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: a plain call; the descriptor is owned at once.
        let fd = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        Ok(Epoll(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub fn add(&self, fd: RawFd, events: i32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, events, token)
    }

    pub fn change(&self, fd: RawFd, events: i32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, events, token)
    }

    fn control(&self, what: i32, fd: RawFd, events: i32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: events as u32,
            u64: token,
        };
        // SAFETY: the event lives through the call.
        checked(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), what, fd, &mut event) }).map(|_| ())
    }

    /// Waits at most `timeout_ns` (0: not at all; None: for ever), to the nanosecond where the
    /// kernel can (epoll_pwait2, Linux 5.11), else rounded down to milliseconds, which makes the
    /// last one a spin.
    #[inline]
    pub fn wait(
        &self,
        events: &mut [libc::epoll_event],
        timeout_ns: Option<i64>,
    ) -> io::Result<usize> {
        let fd = self.0.as_raw_fd();
        let room = events.len() as libc::c_int;
        let Some(timeout_ns) = timeout_ns.filter(|&ns| ns > 0) else {
            let forever = if timeout_ns.is_none() { -1 } else { 0 };
            // SAFETY: at most `room` events are written.
            return interrupted_is_none(unsafe {
                libc::epoll_wait(fd, events.as_mut_ptr(), room, forever)
            } as i64);
        };
        let timeout = libc::timespec {
            tv_sec: timeout_ns / 1_000_000_000,
            tv_nsec: timeout_ns % 1_000_000_000,
        };
        // SAFETY: at most `room` events are written; no signal mask is given.
        let got = interrupted_is_none(unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                fd,
                events.as_mut_ptr(),
                room,
                &raw const timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        });
        match got {
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                let timeout_ms = (timeout_ns / 1_000_000).min(i64::from(i32::MAX)) as i32;
                // SAFETY: at most `room` events are written.
                interrupted_is_none(unsafe {
                    libc::epoll_wait(fd, events.as_mut_ptr(), room, timeout_ms)
                } as i64)
            }
            got => got,
        }
    }
}

fn interrupted_is_none(result: i64) -> io::Result<usize> {
    if result >= 0 {
        return Ok(result as usize);
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        error => Err(error),
    }
}

/// Confines the calling thread to one cpu.
pub fn pin(cpu: usize) -> io::Result<()> {
    // SAFETY: an all-zero set is valid, and `cpu` is checked against its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if cpu >= 8 * size_of::<libc::cpu_set_t>() {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        libc::CPU_SET(cpu, &mut set);
        checked(libc::sched_setaffinity(
            0,
            size_of::<libc::cpu_set_t>(),
            &set,
        ))
        .map(|_| ())
    }
}

/// Wakes the calling thread when asked and not up to 50 us later, as is the default.
pub fn least_timer_slack() {
    // SAFETY: a plain call.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize, 0, 0, 0) };
}

/// Asks for the first-in-first-out real-time class.
pub fn realtime(priority: i32) -> io::Result<()> {
    let parameter = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the parameter lives through the call.
    checked(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) }).map(|_| ())
}

/// Makes the calling thread give way to all others: no real-time class even where it is inherited,
/// niceness 5, and off `cpus` as far as there are others. What the machine refuses is left.
pub fn step_back(cpus: &[usize]) {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: an all-zero set is valid, and every pointer lives through its call.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &parameter);
        libc::setpriority(libc::PRIO_PROCESS, 0, 5);
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, size, &mut set) == 0 {
            for &cpu in cpus.iter().filter(|&&cpu| cpu < 8 * size) {
                libc::CPU_CLR(cpu, &mut set);
            }
            if libc::CPU_COUNT(&set) > 0 {
                libc::sched_setaffinity(0, size, &set);
            }
        }
    }
}

/// What the calling thread has used so far.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Usage {
    pub user_ns: i64,
    pub system_ns: i64,
    /// Time it could have run but the cpu was taken.
    pub run_wait_ns: i64,
    pub voluntary_switches: i64,
    pub involuntary_switches: i64,
    pub minor_faults: i64,
}

impl Usage {
    pub fn of_this_thread() -> Usage {
        // SAFETY: an all-zero rusage is valid, and it is written through the call only.
        let used = unsafe {
            let mut used: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &mut used);
            used
        };
        let ns = |time: libc::timeval| time.tv_sec * 1_000_000_000 + time.tv_usec * 1_000;
        // "time on the cpu, time waiting to run, timeslices"
        let run_wait_ns = std::fs::read_to_string("/proc/thread-self/schedstat")
            .ok()
            .and_then(|text| text.split_ascii_whitespace().nth(1)?.parse().ok())
            .unwrap_or(0);
        Usage {
            user_ns: ns(used.ru_utime),
            system_ns: ns(used.ru_stime),
            run_wait_ns,
            voluntary_switches: used.ru_nvcsw,
            involuntary_switches: used.ru_nivcsw,
            minor_faults: used.ru_minflt,
        }
    }

    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            user_ns: self.user_ns - earlier.user_ns,
            system_ns: self.system_ns - earlier.system_ns,
            run_wait_ns: self.run_wait_ns - earlier.run_wait_ns,
            voluntary_switches: self.voluntary_switches - earlier.voluntary_switches,
            involuntary_switches: self.involuntary_switches - earlier.involuntary_switches,
            minor_faults: self.minor_faults - earlier.minor_faults,
        }
    }
}

/// Sees to it that `wanted` descriptors can be open, raising the soft limit if need be.
pub fn allow_descriptors(wanted: u64) -> io::Result<()> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` lives through both calls.
    checked(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) })?;
    if limit.rlim_cur >= wanted {
        return Ok(());
    }
    let hard = limit.rlim_max;
    limit.rlim_cur = wanted.min(hard);
    if hard < wanted || checked(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }).is_err() {
        return Err(io::Error::other(format!(
            "{wanted} file descriptors are needed and the limit is {hard}: raise `ulimit -n` or \
             use fewer connections"
        )));
    }
    Ok(())
}
