//! The declared analysis as an FTS5 tokenizer, so that SQLite sees the terms that all others see.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use rusqlite::ffi;
use rusqlite::{Connection, Error};

use crate::analysis::Terms;

type TokenSink =
    unsafe extern "C" fn(*mut c_void, c_int, *const c_char, c_int, c_int, c_int) -> c_int;

/// Makes `tokenize = 'declared'` known to this connection.
pub fn register(connection: &Connection) -> rusqlite::Result<()> {
    let mut tokenizer = ffi::fts5_tokenizer {
        xCreate: Some(create),
        xDelete: Some(delete),
        xTokenize: Some(tokenize),
    };
    // SAFETY: the way of getting at the API that FTS5's documentation gives ("Extending FTS5");
    // the handle is open for the time of the call, and FTS5 copies the structure.
    let code = unsafe {
        let db = connection.handle();
        let mut api: *mut ffi::fts5_api = ptr::null_mut();
        let mut statement = ptr::null_mut();
        let code = ffi::sqlite3_prepare_v2(
            db,
            c"SELECT fts5(?1)".as_ptr(),
            -1,
            &mut statement,
            ptr::null_mut(),
        );
        if code == ffi::SQLITE_OK {
            ffi::sqlite3_bind_pointer(
                statement,
                1,
                (&raw mut api).cast(),
                c"fts5_api_ptr".as_ptr(),
                None,
            );
            ffi::sqlite3_step(statement);
        }
        ffi::sqlite3_finalize(statement);
        match api.as_ref().and_then(|found| found.xCreateTokenizer) {
            Some(make) => make(
                api,
                c"declared".as_ptr(),
                ptr::null_mut(),
                &mut tokenizer,
                None,
            ),
            None => ffi::SQLITE_ERROR,
        }
    };
    if code == ffi::SQLITE_OK {
        return Ok(());
    }
    let said = Some("FTS5 does not take the tokenizer".to_owned());
    Err(Error::SqliteFailure(ffi::Error::new(code), said))
}

unsafe extern "C" fn create(
    _: *mut c_void,
    _: *mut *const c_char,
    _: c_int,
    out: *mut *mut ffi::Fts5Tokenizer,
) -> c_int {
    // It has no state, but FTS5 takes null for failure.
    // SAFETY: FTS5 gives a place to write to; the pointer is never followed.
    unsafe { *out = ptr::NonNull::dangling().as_ptr() };
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(_: *mut ffi::Fts5Tokenizer) {}

unsafe extern "C" fn tokenize(
    _: *mut ffi::Fts5Tokenizer,
    context: *mut c_void,
    _: c_int,
    text: *const c_char,
    bytes: c_int,
    sink: Option<TokenSink>,
) -> c_int {
    let (Some(sink), false) = (sink, text.is_null()) else {
        return ffi::SQLITE_OK;
    };
    // SAFETY: FTS5 promises that many bytes.
    let text = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), bytes.max(0) as usize) };
    let text = String::from_utf8_lossy(text);
    let mut terms = Terms::new(&text);
    let mut term = String::new();
    while let Some((from, to)) = terms.next_into(&mut term) {
        // SAFETY: FTS5's own callback, given what it asks for; it copies the term.
        let code = unsafe {
            sink(
                context,
                0,
                term.as_ptr().cast(),
                term.len() as c_int,
                from as c_int,
                to as c_int,
            )
        };
        if code != ffi::SQLITE_OK {
            return code;
        }
    }
    ffi::SQLITE_OK
}
