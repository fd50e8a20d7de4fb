/* The pool of this process, as TVM's registry of functions knows it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct Pool Pool;

/* Of TVM's FFI, as its c_api.h has it. */
typedef struct {
  const char *data;
  size_t size;
} TVMFFIByteArray;

typedef struct {
  int32_t type_index;
  uint32_t zero_padding;
  union {
    int64_t v_int64;
    void *v_ptr;
  };
} TVMFFIAny;

typedef int (*SafeCall)(void *self, const TVMFFIAny *arguments, int32_t count, TVMFFIAny *result);

/* All weak, for a process without TVM has a pool, too. */
#define WEAK __attribute__((weak))
WEAK int TVMFFIFunctionGetGlobal(const TVMFFIByteArray *name, void **function);
WEAK int TVMFFIFunctionSetGlobal(const TVMFFIByteArray *name, void *function, int override);
WEAK int TVMFFIFunctionCreate(void *self, SafeCall call, void (*deleter)(void *), void **function);
WEAK int TVMFFIFunctionCall(void *function, TVMFFIAny *arguments, int32_t count, TVMFFIAny *result);
WEAK int TVMFFIObjectDecRef(void *object);

static const char NAME[] = "tvm_rammer.workers.v3";
static const TVMFFIByteArray NAME_BYTES = {NAME, sizeof NAME - 1};

static Pool *find_pool(void) {
  void *function = NULL;
  TVMFFIAny result = {0};
  if (!TVMFFIFunctionGetGlobal || TVMFFIFunctionGetGlobal(&NAME_BYTES, &function) || !function) return NULL;
  if (TVMFFIFunctionCall(function, NULL, 0, &result)) result.v_ptr = NULL;
  TVMFFIObjectDecRef(function);
  return result.v_ptr;
}
