//! Being told to stop: by a signal, or by whoever started the host in this process.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, Ordering};

/// A flag that can be waited for together with a descriptor, and raised in a signal handler.
#[derive(Debug)]
pub struct Wake(RawFd);

impl Wake {
    /// Not raised.
    pub fn new() -> std::io::Result<Wake> {
        // SAFETY: no pointers are passed.
        match unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) } {
            -1 => Err(std::io::Error::last_os_error()),
            fd => Ok(Wake(fd)),
        }
    }

    /// The descriptor that becomes readable once raised.
    pub fn fd(&self) -> RawFd {
        self.0
    }

    /// Raises it, for ever.
    pub fn raise(&self) {
        raise(self.0);
    }

    /// Blocks until `fd` is readable (true) or the flag is raised (false).
    pub fn wait_or_readable(&self, fd: RawFd) -> bool {
        let mut polled = [self.0, fd].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        loop {
            // SAFETY: the array lives through the call, its length is given.
            let count = unsafe { libc::poll(polled.as_mut_ptr(), 2, -1) };
            if polled[0].revents != 0 {
                return false;
            }
            if count > 0 {
                return true;
            }
        }
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours and not used afterwards.
        unsafe { libc::close(self.0) };
    }
}

fn raise(fd: RawFd) {
    let one = 1u64;
    // SAFETY: write is allowed in a signal handler; eight bytes are there.
    unsafe { libc::write(fd, (&raw const one).cast(), 8) };
}

static TARGET: AtomicI32 = AtomicI32::new(-1);
static CAUGHT: AtomicI32 = AtomicI32::new(0);

extern "C" fn handle(signal: libc::c_int) {
    CAUGHT.store(signal, Ordering::SeqCst);
    raise(TARGET.load(Ordering::SeqCst));
}

/// SIGTERM and SIGINT raise `wake` while this lives; then the handlers before it are back.
pub struct Handlers([(libc::c_int, libc::sigaction); 2]);

impl Handlers {
    /// Puts the handlers in place.
    pub fn install(wake: &Wake) -> Handlers {
        TARGET.store(wake.fd(), Ordering::SeqCst);
        Handlers([libc::SIGTERM, libc::SIGINT].map(|signal| {
            // SAFETY: both structures are valid; the handler only does what handlers may.
            unsafe {
                let mut ours: libc::sigaction = std::mem::zeroed();
                ours.sa_sigaction = handle as extern "C" fn(libc::c_int) as usize;
                ours.sa_flags = libc::SA_RESTART;
                let mut before: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, &ours, &mut before);
                (signal, before)
            }
        }))
    }

    /// The signal that came, 0 if none.
    pub fn caught(&self) -> i32 {
        CAUGHT.load(Ordering::SeqCst)
    }
}

impl Drop for Handlers {
    fn drop(&mut self) {
        for (signal, before) in &self.0 {
            // SAFETY: restores what sigaction itself gave us.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
    }
}

/// As many descriptors as the machine lets us: a connection needs one, a segment several.
pub fn raise_descriptor_limit() {
    // SAFETY: the structure is valid and only ours.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && limit.rlim_cur < limit.rlim_max
        {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}
