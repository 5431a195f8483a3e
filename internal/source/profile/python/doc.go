// Package python knows where the stacks of threads are in the memory of a CPython process, for package interpreter.
//
// What it relies on are structs that CPython keeps to itself. From 3.13 on, _PyRuntime begins with their offsets, for
// programs such as this one. For 3.11 and 3.12 they are written down in layout.go, as offsetof gives them for the
// headers of Debian's 3.11.2, of 3.11.7 and of 3.12.1, on a machine of 64 bits. Before 3.11, thread states do not have
// the kernel's number of their thread. Builds without the global interpreter lock (GIL) are refused, too.
//
//   - _PyRuntime, interpreters and thread states:
//     https://github.com/python/cpython/blob/3.11/Include/internal/pycore_runtime.h
//     https://github.com/python/cpython/blob/3.11/Include/internal/pycore_interp.h
//     https://github.com/python/cpython/blob/3.11/Include/cpython/pystate.h
//   - frames, and the chunks of memory that most of them are in:
//     https://github.com/python/cpython/blob/3.11/Include/internal/pycore_frame.h
//     https://github.com/python/cpython/blob/3.14/Include/internal/pycore_interpframe_structs.h
//   - code objects, and their tables of lines:
//     https://github.com/python/cpython/blob/3.11/Include/cpython/code.h
//     https://github.com/python/cpython/blob/3.11/Objects/locations.md
//   - strings: https://github.com/python/cpython/blob/3.11/Include/cpython/unicodeobject.h
//   - the GIL: https://github.com/python/cpython/blob/3.11/Include/internal/pycore_gil.h
//   - the published offsets, in 3.13 in pycore_runtime.h:
//     https://github.com/python/cpython/blob/3.14/Include/internal/pycore_debug_offsets.h
//
// A thread that was never in the main interpreter has its stack in its own. One that is in several has that in the main
// one: what it calls in others is not in it.
//
// Every object is checked for the type that it must have.
package python
