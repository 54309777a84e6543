//! An embedded model in Rust, without the standard library: the functions of `model.h` and a type around them.
#![no_std]

use core::ffi::c_void;

/// Memory at a multiple of 16, as arenas, inputs and outputs must be.
#[repr(C, align(16))]
pub struct Aligned<T>(pub T);

extern "C" {
    fn model_init(arena: *mut c_void, bytes: u32) -> i32;
    fn model_run(arena: *mut c_void, inputs: *const *const c_void, outputs: *const *mut c_void) -> i32;
    fn model_reset(arena: *mut c_void) -> i32;
}

/// An error word of the driver; docs/reference/errors.md lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error(pub i32);

fn checked(word: i32) -> Result<(), Error> {
    if word == 0 { Ok(()) } else { Err(Error(word)) }
}

/// One handle of the model, which borrows its arena.
pub struct Model<'a> {
    arena: &'a mut [u8],
}

impl<'a> Model<'a> {
    /// Prepares the model; an arena of fewer bytes than `MODEL_ARENA_BYTES` of `model.h` is refused.
    pub fn new<const BYTES: usize>(arena: &'a mut Aligned<[u8; BYTES]>) -> Result<Self, Error> {
        let arena = &mut arena.0[..];
        // SAFETY: the driver writes no byte outside of the arena, whose size it is told.
        checked(unsafe { model_init(arena.as_mut_ptr().cast(), arena.len() as u32) })?;
        Ok(Model { arena })
    }

    /// Runs the model once.
    ///
    /// # Safety
    /// There are as many inputs and outputs as `model.h` says, each at a multiple of 16 and of the bytes listed there.
    pub unsafe fn run(&mut self, inputs: &[*const c_void], outputs: &[*mut c_void]) -> Result<(), Error> {
        checked(model_run(self.arena.as_mut_ptr().cast(), inputs.as_ptr(), outputs.as_ptr()))
    }

    /// Sets what the model keeps from run to run back to its first contents.
    pub fn reset(&mut self) -> Result<(), Error> {
        // SAFETY: the arena was prepared by `new`.
        checked(unsafe { model_reset(self.arena.as_mut_ptr().cast()) })
    }
}
