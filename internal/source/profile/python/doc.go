// Package python reads the stacks of threads of a CPython process from its memory, while it runs: which function, in
// which file, at which line. It does not stop the process, attach to it or write anything; it reads /proc/PID/mem.
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
// The process runs while it is read, and may be hostile. Every object is checked for the type that it must have; lists,
// texts, tables and depths are bounded; a stack that changes so fast that it cannot be read is left out and counted. A
// process can make a read of its memory wait (userfaultfd, a file on FUSE), as it can for its /proc/PID/cmdline.
package python
