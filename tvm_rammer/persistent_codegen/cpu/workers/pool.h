/* Making the pool of this process.
 *
 * Each library brings the code of the workers, for plain TVM must be able to run it. The first that needs a pool makes it,
 * and tells the others by a function in TVM's registry. The code that its threads run must stay: a library that makes
 * the pool is pinned. Code that TVM compiled in memory cannot be, so tvm_rammer makes the pool of its own process
 * (`establish` of module.py) before such code runs.
 */
#pragma once
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "workers.h"

enum { FFI_INT = 1, FFI_POINTER = 4 };

static int setting(const char *name, int otherwise) {
  const char *text = getenv(name);
  int value = text ? atoi(text) : 0;
  return value > 0 ? value : otherwise;
}

/* One for each processor that the process may use, or fewer where the user says so. */
static int default_workers(void) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  int processors = sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : 1;
  int wanted = setting("TVM_NUM_THREADS", setting("OMP_NUM_THREADS", processors));
  return wanted < processors ? wanted : processors;
}

/* What the registered function does: returns the pool; an argument is the number of its workers. */
int rammer_give_pool(void *self, const TVMFFIAny *arguments, int32_t count, TVMFFIAny *result) {
  Pool *pool = self;
  if (count > 0 && arguments[0].type_index == FFI_INT) atomic_store(&pool->workers, (int)arguments[0].v_int64);
  result->type_index = FFI_POINTER;
  result->zero_padding = 0;
  result->v_ptr = pool;
  return 0;
}

/* Let the library that this code is in stay loaded. */
static void pin(const Entries *entries) {
  Dl_info library;
  if (dladdr((void *)entries->help, &library)) dlopen(library.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

static Pool *new_pool(const Entries *entries) {
  static Pool pool;
  State *state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool usable = state != MAP_FAILED && madvise(state, sizeof *state, MADV_WIPEONFORK) == 0;
  pin(entries);
  atomic_init(&pool.workers, usable ? default_workers() : 1);
  pool.patience_ns = 1000 * (int64_t)setting("RAMMER_SPIN_US", 100);
  pool.entries = entries;
  pool.state = state;
  return &pool;
}

/* Make the pool, unless this process has one. */
void rammer_make_pool(Pool **pool, const Entries *entries) {
  static atomic_int making;
  static Pool *made;
  while (atomic_exchange(&making, 1)) sched_yield();
  if (!made) made = find_pool();
  if (!made) {
    made = new_pool(entries);
    void *function = NULL;
    if (TVMFFIFunctionCreate && TVMFFIFunctionCreate(made, entries->give_pool, NULL, &function) == 0) {
      Pool *first = TVMFFIFunctionSetGlobal(&NAME_BYTES, function, 0) ? find_pool() : NULL; /* somebody else was first */
      if (first) made = first;
      TVMFFIObjectDecRef(function);
    }
  }
  *pool = made;
  atomic_store(&making, 0);
}
