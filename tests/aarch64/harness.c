/* Runs the functions of a model that was compiled for this kind of processor, in their order, without TVM: program.h says
 * which (emulate.py writes it), and this has the few functions of TVM's FFI that the code of programs and workers calls.
 *
 *     harness INITIAL RESULTS RUNS
 *
 * INITIAL holds the bytes of all buffers, RESULTS those of the results after the last of the runs.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FFI_POINTER = 4, FFI_DLTENSOR = 7, CPU = 1 };

typedef struct {
  int32_t type_index;
  uint32_t zero_padding;
  union {
    int64_t v_int64;
    void *v_ptr;
  };
} Any;
typedef int (*SafeCall)(void *self, const Any *arguments, int32_t count, Any *result);

/* As dlpack.h has it. */
typedef struct {
  void *data;
  struct {
    int32_t type, id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} DLTensor;

typedef struct {
  int code, bits;
  size_t bytes;
  int ndim;
  int64_t shape[8];
} Buffer;

typedef struct {
  const char *name;
  SafeCall function;
  int count, buffers[MOST_ARGUMENTS];
} Call;

#include "program.h"

/* TVM's registry, which has one entry here: the pool of workers. */

static struct {
  void *self;
  SafeCall call;
} created, registered;

int TVMFFIFunctionCreate(void *self, SafeCall call, void (*deleter)(void *), void **function) {
  created.self = self;
  created.call = call;
  *function = &created;
  return 0;
}

int TVMFFIFunctionSetGlobal(const void *name, void *function, int override) {
  if (registered.call) return -1;
  registered = created;
  return 0;
}

int TVMFFIFunctionGetGlobal(const void *name, void **function) {
  *function = registered.call ? &registered : NULL;
  return 0;
}

int TVMFFIFunctionCall(void *function, Any *arguments, int32_t count, Any *result) {
  return registered.call(registered.self, arguments, count, result);
}

int TVMFFIObjectDecRef(void *object) { return 0; }

void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message) { fprintf(stderr, "%s: %s\n", kind, message); }

void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t count) {
  fprintf(stderr, "%s: ", kind);
  for (int i = 0; i < count; i++) fputs(parts[i] ? parts[i] : "", stderr);
  fputc('\n', stderr);
}

/* The emulator knows no memory that is empty in a forked child; without it there would be one worker. Nothing forks here. */
int madvise(void *address, size_t length, int advice) { return 0; }

static void fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(2);
}

int main(int argc, char **argv) {
  if (argc != 4) fail("harness INITIAL RESULTS RUNS");
  enum { BUFFERS = sizeof buffers / sizeof *buffers, CALLS = sizeof calls / sizeof *calls };
  static DLTensor tensors[BUFFERS];
  FILE *initial = fopen(argv[1], "rb"), *results = fopen(argv[2], "wb");
  if (!initial || !results) fail("cannot open a file");
  for (int i = 0; i < BUFFERS; i++) {
    Buffer *buffer = &buffers[i];
    void *data = aligned_alloc(128, (buffer->bytes + 128) / 128 * 128);
    if (fread(data, 1, buffer->bytes, initial) != buffer->bytes) fail("too few bytes");
    tensors[i] = (DLTensor){.data = data, .device = {CPU, 0}, .ndim = buffer->ndim, .shape = buffer->shape};
    tensors[i].dtype.code = buffer->code;
    tensors[i].dtype.bits = buffer->bits;
    tensors[i].dtype.lanes = 1;
    int64_t *strides = tensors[i].strides = calloc(8, sizeof *strides), stride = 1;
    for (int axis = buffer->ndim - 1; axis >= 0; stride *= buffer->shape[axis--]) strides[axis] = stride;
  }
  for (int run = 0; run < atoi(argv[3]); run++) {
    for (int i = 0; i < CALLS; i++) {
      Any arguments[MOST_ARGUMENTS] = {{0}}, result = {0};
      for (int a = 0; a < calls[i].count; a++) {
        arguments[a].type_index = FFI_DLTENSOR;
        arguments[a].v_ptr = &tensors[calls[i].buffers[a]];
      }
      if (calls[i].function(NULL, arguments, calls[i].count, &result)) fail(calls[i].name);
    }
  }
  for (size_t i = 0; i < sizeof returned / sizeof *returned; i++) {
    fwrite(tensors[returned[i]].data, 1, buffers[returned[i]].bytes, results);
  }
  return fclose(results);
}
