// Package ruby knows where the stacks of threads are in the memory of a CRuby process, for package interpreter.
//
// What it relies on are structs that CRuby keeps to itself. Where their fields are is written down in layout.go, as
// offsetof gives it for the headers of Debian's 3.1.2, 3.3.8 and 3.4.5, on amd64. That they are there is checked in
// each process before any of it is used: its virtual machine, its main Ractor, its main thread and the execution
// context of that must refer to each other, and lists must close.
//
//   - the virtual machine, threads, execution contexts, control frames, and instruction sequences (iseq):
//     https://github.com/ruby/ruby/blob/v3_3_8/vm_core.h
//   - Ractors: https://github.com/ruby/ruby/blob/v3_3_8/ractor_core.h
//   - the lock of a Ractor (GVL), and native threads: https://github.com/ruby/ruby/blob/v3_3_8/thread_pthread.h
//   - lines of instructions: https://github.com/ruby/ruby/blob/v3_3_8/iseq.c (succ_index_table)
//   - strings and arrays: https://github.com/ruby/ruby/blob/v3_3_8/include/ruby/internal/core/rstring.h
//     https://github.com/ruby/ruby/blob/v3_3_8/include/ruby/internal/core/rarray.h
//
// A library that exports no pointer to its virtual machine, as Debian's since 3.3, has it among its variables without a
// name: the one that passes these checks.
//
// Functions in C have no names here: a call of one is at its line in the function that calls it. The stack of a thread
// that runs a fiber is that of the fiber.
package ruby
