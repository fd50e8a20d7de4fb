/* Finding the pool of this process.
 *
 * Each module brings the code of the workers, for plain TVM must be able to run it. The first that runs makes the pool,
 * and tells the others by a function in TVM's registry. The code that its threads run must stay: a library that makes
 * the pool is pinned. Code that TVM compiled in memory cannot be, so tvm_rammer makes the pool of its own process
 * (`establish` of __init__.py) before such code runs.
 */
#pragma once
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "workers.h"

/* All weak, for a process without TVM has a pool, too. */
#define WEAK __attribute__((weak))
WEAK int TVMFFIFunctionGetGlobal(const TVMFFIByteArray *name, void **function);
WEAK int TVMFFIFunctionSetGlobal(const TVMFFIByteArray *name, void *function, int override);
WEAK int TVMFFIFunctionCreate(void *self, SafeCall call, void (*deleter)(void *), void **function);
WEAK int TVMFFIFunctionCall(void *function, TVMFFIAny *arguments, int32_t count, TVMFFIAny *result);
WEAK int TVMFFIObjectDecRef(void *object);

enum { FFI_INT = 1, FFI_POINTER = 4 };

static const char NAME[] = "tvm_rammer.workers.v1";
static const TVMFFIByteArray NAME_BYTES = {NAME, sizeof NAME - 1};

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

static Pool *find_pool(void) {
  void *function = NULL;
  TVMFFIAny result = {0};
  if (!TVMFFIFunctionGetGlobal || TVMFFIFunctionGetGlobal(&NAME_BYTES, &function) || !function) return NULL;
  if (TVMFFIFunctionCall(function, NULL, 0, &result)) result.v_ptr = NULL;
  TVMFFIObjectDecRef(function);
  return result.v_ptr;
}

/* Let the library that this code is in stay loaded. */
static void pin(const Entries *entries) {
  Dl_info library;
  if (dladdr((void *)entries->help, &library)) dlopen(library.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

static Pool *make_pool(const Entries *entries) {
  static Pool pool;
  State *state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool usable = state != MAP_FAILED && madvise(state, sizeof *state, MADV_WIPEONFORK) == 0;
  pin(entries);
  atomic_init(&pool.workers, usable ? default_workers() : 1);
  pool.patience_ns = 1000 * (int64_t)setting("RAMMER_SPIN_US", 100);
  pool.help = entries->help;
  pool.state = state;
  return &pool;
}

WEAK _Atomic(Pool *) rammer_the_pool;

Pool *rammer_pool(const Entries *entries) {
  static atomic_int making;
  Pool *pool = atomic_load(&rammer_the_pool);
  if (pool) return pool;
  while (atomic_exchange(&making, 1)) sched_yield();
  pool = find_pool();
  if (!pool) {
    pool = make_pool(entries);
    void *function = NULL;
    if (TVMFFIFunctionCreate && TVMFFIFunctionCreate(pool, entries->give_pool, NULL, &function) == 0) {
      Pool *first = TVMFFIFunctionSetGlobal(&NAME_BYTES, function, 0) ? find_pool() : NULL; /* somebody else was first */
      if (first) pool = first;
      TVMFFIObjectDecRef(function);
    }
  }
  atomic_store(&rammer_the_pool, pool);
  atomic_store(&making, 0);
  return pool;
}
