// An NVRTC for tests: the cubin of any text is an ELF header; a text with the word "reject" is rejected.
#include <string.h>
static int rejected;
int nvrtcCreateProgram(void** program, const char* text, const char* name, int n, void* headers, void* names) {
  (void)name, (void)headers, (void)names;
  rejected = strstr(text, "reject") != 0;
  *program = &rejected;
  return n;
}
int nvrtcCompileProgram(void* program, int n, const char** options) {
  (void)program;
  return rejected || n < 1 || strcmp(options[0], "--gpu-architecture=sm_90");
}
int nvrtcGetCUBINSize(void* program, size_t* size) { (void)program; *size = 8; return 0; }
int nvrtcGetCUBIN(void* program, char* data) { (void)program; memcpy(data, "\177ELF\0\0\0\0", 8); return 0; }
int nvrtcGetProgramLogSize(void* program, size_t* size) { (void)program; *size = 8; return 0; }
int nvrtcGetProgramLog(void* program, char* data) { (void)program; memcpy(data, "no way!", 8); return 0; }
