// A CUDA driver for tests: memory is the host's, and a kernel does what its name says, at once.
//
//   double_*  out[i] = 2 * in[i]           wrong_*  out[i] = 3 * in[i]      racy_*  out[i] = 2 * in[i] + number of the launch / 1e6
//   crash_*   ends the process             hang_*   never ends              big_*   no block of it fits
//   fault_*   breaks the context           all others do nothing
//
// The environment variable FAKE_CUDA_LOG names a file that gets a line for each launch.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kErrorLaunchFailed = 719, kInvalid = 1 };
typedef struct { char name[128]; } Function;
typedef struct { Function* function; unsigned blocks, threads; float *in, *out; } Recorded;
typedef struct { Recorded items[1024]; int count; } Graph;
static Graph* capturing;
static int broken, launches;

static int is(const Function* f, const char* kind) { return !strncmp(f->name, kind, strlen(kind)); }

static void execute(const Recorded* it) {
  unsigned n = it->blocks * it->threads;
  if (is(it->function, "crash_")) abort();
  if (is(it->function, "fault_")) broken = 1;
  while (is(it->function, "hang_")) sleep(1);
  ++launches;
  float factor = is(it->function, "double_") || is(it->function, "racy_") ? 2 : is(it->function, "wrong_") ? 3 : 0;
  float extra = is(it->function, "racy_") ? 1e-6f * (float)launches : 0;
  for (unsigned i = 0; factor && i < n; ++i) it->out[i] = factor * it->in[i] + extra;
}

static int launch(Function* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                  unsigned shared, void** p, int cooperative) {
  const char* path = getenv("FAKE_CUDA_LOG");
  if (path && *path) {
    FILE* log = fopen(path, "a");
    fprintf(log, "%s %u,%u,%u %u,%u,%u %u %d%s\n", f->name, gx, gy, gz, bx, by, bz, shared, cooperative,
            capturing ? " captured" : "");
    fclose(log);
  }
  Recorded it = {f, gx * gy * gz, bx * by * bz, *(float**)p[0], *(float**)p[1]};
  if (capturing) capturing->items[capturing->count++] = it;
  else execute(&it);
  return broken ? kErrorLaunchFailed : 0;
}

int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGetCount(int* n) { *n = 1; return 0; }
int cuDeviceGet(int* device, int i) { *device = i; return 0; }
int cuDeviceGetName(char* name, int size, int device) { snprintf(name, (size_t)size, "Fake GPU %d", device); return 0; }
int cuDriverGetVersion(int* version) { *version = 13000; return 0; }
int cuDeviceGetAttribute(int* value, int which, int device) {
  (void)device;
  *value = which == 75 ? 9 : which == 76 ? 0 : which == 16 ? 4 : which == 95 ? 1 : 1000000;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) { (void)device; *context = &broken; return 0; }
int cuCtxSetCurrent(void* context) { return context != &broken; }
int cuCtxSynchronize(void) { return broken ? kErrorLaunchFailed : 0; }
int cuGetErrorName(int status, const char** name) {
  *name = status == kErrorLaunchFailed ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_INVALID_VALUE";
  return 0;
}
int cuMemAlloc_v2(uint64_t* pointer, size_t bytes) { *pointer = (uint64_t)(uintptr_t)malloc(bytes); return 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) { memcpy((void*)(uintptr_t)to, from, bytes); return 0; }
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) { memcpy(to, (void*)(uintptr_t)from, bytes); return 0; }
int cuMemsetD8_v2(uint64_t at, unsigned char byte, size_t bytes) { memset((void*)(uintptr_t)at, byte, bytes); return 0; }
int cuModuleLoadData(void** module, const char* image) { *module = "module"; return memcmp(image, "\177ELF", 4) ? kInvalid : 0; }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  (void)module;
  Function* f = calloc(1, sizeof(Function));
  snprintf(f->name, sizeof f->name, "%s", name);
  *function = f;
  return 0;
}
int cuFuncSetAttribute(void* function, int which, int value) { (void)function; return which == 8 && value > 0 ? 0 : kInvalid; }
int cuFuncGetAttribute(int* value, int which, void* function) { (void)function; *value = which == 4 ? 40 : 0; return 0; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function* f, int threads, size_t shared) {
  *blocks = is(f, "big_") || threads > 1024 || shared > 232448 ? 0 : 2;
  return 0;
}
int cuStreamCreate(void** stream, unsigned flags) { (void)flags; *stream = &capturing; return 0; }
int cuStreamSynchronize(void* stream) { (void)stream; return cuCtxSynchronize(); }
int cuEventCreate(void** event, unsigned flags) { (void)flags; *event = calloc(1, sizeof(struct timespec)); return 0; }
int cuEventRecord(void* event, void* stream) { (void)stream; return clock_gettime(CLOCK_MONOTONIC, event); }
int cuEventSynchronize(void* event) { (void)event; return cuCtxSynchronize(); }
int cuEventElapsedTime(float* ms, const struct timespec* a, const struct timespec* b) {
  *ms = (float)((double)(b->tv_sec - a->tv_sec) * 1e3 + (double)(b->tv_nsec - a->tv_nsec) * 1e-6);
  return 0;
}
int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void* stream, void** p, void** extra) {
  (void)stream;
  return extra ? kInvalid : launch(f, gx, gy, gz, bx, by, bz, shared, p, 0);
}
int cuLaunchCooperativeKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                              unsigned shared, void* stream, void** p) {
  (void)stream;
  return launch(f, gx, gy, gz, bx, by, bz, shared, p, 1);
}
int cuStreamBeginCapture_v2(void* stream, int mode) { (void)stream; capturing = calloc(1, sizeof(Graph)); return mode != 1; }
int cuStreamEndCapture(void* stream, void** graph) { (void)stream; *graph = capturing; capturing = 0; return 0; }
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long flags) { *executable = graph; return (int)flags; }
int cuGraphLaunch(const Graph* graph, void* stream) {
  (void)stream;
  for (int i = 0; i < graph->count; ++i) execute(&graph->items[i]);
  return broken ? kErrorLaunchFailed : 0;
}
