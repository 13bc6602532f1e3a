//! Columns of integers out of anything with the buffer protocol.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// An integer type that a column can have: its name for people, and its format letters.
pub trait Whole: Copy {
    const NAME: &'static str;
    const LETTERS: &'static [u8];
}

impl Whole for u16 {
    const NAME: &'static str = "u16";
    const LETTERS: &'static [u8] = b"H";
}

impl Whole for u32 {
    const NAME: &'static str = "u32";
    const LETTERS: &'static [u8] = b"IL";
}

impl Whole for u64 {
    const NAME: &'static str = "u64";
    const LETTERS: &'static [u8] = b"QLN";
}

impl Whole for i64 {
    const NAME: &'static str = "i64";
    const LETTERS: &'static [u8] = b"qln";
}

/// Copies the bytes of a contiguous buffer.
pub fn bytes(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<u8>> {
    let buffer = contiguous(object, name)?;
    let mut copy = Vec::with_capacity(buffer.len_bytes());
    // SAFETY: the buffer is contiguous, `len_bytes` long, and held while it is copied.
    unsafe {
        std::ptr::copy_nonoverlapping(
            buffer.buf_ptr().cast::<u8>().cast_const(),
            copy.as_mut_ptr(),
            buffer.len_bytes(),
        );
        copy.set_len(buffer.len_bytes());
    }
    Ok(copy)
}

/// Copies a column of `T`: a buffer of that type, or of plain bytes that hold it little-endian.
pub fn column<T: Whole>(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<T>> {
    let buffer = contiguous(object, name)?;
    let width = size_of::<T>();
    let format = buffer.format().to_bytes();
    let letter = match format {
        [b'<' | b'=' | b'@', letter] | [letter] => *letter,
        _ => 0,
    };
    let typed = buffer.item_size() == width && T::LETTERS.contains(&letter);
    let plain = buffer.item_size() == 1
        && matches!(letter, b'B' | b'b' | b'c')
        && buffer.len_bytes().is_multiple_of(width);
    if !typed && !plain {
        return Err(PyValueError::new_err(format!(
            "{name} must be a column of {}, and is of format {:?} with {} bytes an item",
            T::NAME,
            String::from_utf8_lossy(format),
            buffer.item_size()
        )));
    }
    let count = buffer.len_bytes() / width;
    let mut copy: Vec<T> = Vec::with_capacity(count);
    // SAFETY: the buffer is contiguous and holds `count` times `width` bytes; every bit pattern is
    // a `T`; it is held while it is copied, and copied bytewise, so alignment does not matter.
    unsafe {
        std::ptr::copy_nonoverlapping(
            buffer.buf_ptr().cast::<u8>().cast_const(),
            copy.as_mut_ptr().cast::<u8>(),
            count * width,
        );
        copy.set_len(count);
    }
    Ok(copy)
}

fn contiguous(object: &Bound<'_, PyAny>, name: &str) -> PyResult<PyUntypedBuffer> {
    let buffer = PyUntypedBuffer::get(object)?;
    if buffer.is_c_contiguous() && buffer.dimensions() <= 1 {
        return Ok(buffer);
    }
    Err(PyValueError::new_err(format!(
        "{name} must be contiguous and of one dimension"
    )))
}
