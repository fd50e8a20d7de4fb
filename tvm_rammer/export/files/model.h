/* A model that tvm_rammer compiled for @DEVICE@: how to run it from C or C++. model.cu implements it.
 *
 * One instance holds the weights, the plan and the memory of a run. It runs one run at a time: runs that are asked for
 * on several streams or by several threads follow one another, in the order of the calls. For runs side by side make
 * several instances; the blocks of their persistent kernels must fit on the GPU together, or one waits for the other.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stddef.h>

#if defined(__GNUC__)
#define MODEL_PUBLIC __attribute__((visibility("default")))
#else
#define MODEL_PUBLIC
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct model_instance model_instance;

typedef enum {
  MODEL_OK = 0,
  MODEL_NO_GPU,       /* no driver or no GPU */
  MODEL_UNFIT_GPU,    /* the kernels are for another architecture, or their blocks do not all fit on this GPU at once */
  MODEL_BAD_WEIGHTS,  /* the file of the weights is missing, or is another one */
  MODEL_BAD_ARGUMENT, /* a null pointer, an array that is not aligned, or another GPU than the instance's */
  MODEL_NO_MEMORY,    /* too little memory on the GPU or in the process */
  MODEL_CUDA_ERROR    /* CUDA refused something else: model_last_error() says what */
} model_status;

/* An input or an output. `type` is NumPy's name, such as "float32"; arrays are dense, the last dimension fastest. */
typedef struct {
  const char* name;
  const char* type;
  size_t bytes;
  int rank;
  const long long* shape;
} model_tensor;

enum { MODEL_NUM_INPUTS = @NUM_INPUTS@, MODEL_NUM_OUTPUTS = @NUM_OUTPUTS@, MODEL_ALIGNMENT = @ALIGNMENT@ };

/* The inputs and the outputs, in the order in which model_run takes them:
@TENSORS@ */
MODEL_PUBLIC extern const model_tensor model_inputs[];
MODEL_PUBLIC extern const model_tensor model_outputs[];

/* Makes an instance on the current GPU. `weights_path` is the file model.weights of this project. */
MODEL_PUBLIC model_status model_create(const char* weights_path, model_instance** instance);

/* Starts a run; returns before it ends. `inputs` and `outputs` point to arrays on the GPU that begin at a multiple of
 * MODEL_ALIGNMENT bytes, as what cudaMalloc returns does; outputs overlap nothing else. `stream` is a cudaStream_t, NULL
 * the default stream. A stream that is being captured gets the run as a part of its graph: then the order of the graph's
 * launches, and of other runs of this instance, is the caller's business: one at a time. */
MODEL_PUBLIC model_status model_run(
    model_instance* instance, const void* const* inputs, void* const* outputs, void* stream);

/* What the blocks of a run that does not end wait for: a line for each vEU whose next wait has not come true, with the row
 * of its lane, the event, and how many of its arrivals there are, since the instance was made. Reads the counters beside
 * the run; the text is empty where no run is under way that model_run has started. At most `bytes` are written, a 0 at
 * the end among them. */
MODEL_PUBLIC model_status model_report_waits(model_instance* instance, char* text, size_t bytes);

/* Frees an instance, after its last run has ended. NULL is nothing. */
MODEL_PUBLIC void model_destroy(model_instance* instance);

/* What went wrong in the last call of this thread that did not return MODEL_OK. */
MODEL_PUBLIC const char* model_last_error(void);

#ifdef __cplusplus
}
#endif

#endif /* MODEL_H */
