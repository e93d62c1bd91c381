// Makes Synchronization.Mutex visible to ThreadSanitizer; `scripts/torture threads` links it into what it checks.
//
// On Linux the uncontended half of the lock is a compare-and-swap in the caller, which is instrumented like all of it.
// The contended half is in the standard library's own binary, which is not: a lock taken after waiting, and one given
// to somebody who waits, pass as no order at all, and every use of a contended mutex as a race. So these two functions
// stand before the library's, tell the sanitizer what they do, and call them.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void __tsan_acquire(void *address);
void __tsan_release(void *address);

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))
// Synchronization._MutexHandle._lockSlow(_: UInt32) and _unlockSlow(), by their mangled names.
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

SWIFT void visible_lock(uint32_t thread, SELF void *mutex) __asm__(LOCK);
SWIFT void visible_unlock(SELF void *mutex) __asm__(UNLOCK);

static SWIFT void (*lock)(uint32_t thread, SELF void *mutex);
static SWIFT void (*unlock)(SELF void *mutex);

// Before any thread but the first.
__attribute__((constructor)) static void find(void) {
    *(void **)&lock = dlsym(RTLD_NEXT, LOCK);
    *(void **)&unlock = dlsym(RTLD_NEXT, UNLOCK);
    // A program without the library contends for none of its locks; a library without these two is another one.
    if (!lock != !unlock) {
        fputs("visible-mutex: this Swift standard library implements Mutex differently; update this file\n", stderr);
        abort();
    }
}

SWIFT void visible_lock(uint32_t thread, SELF void *mutex) {
    lock(thread, mutex);
    __tsan_acquire(mutex);
}

SWIFT void visible_unlock(SELF void *mutex) {
    __tsan_release(mutex);
    unlock(mutex);
}
