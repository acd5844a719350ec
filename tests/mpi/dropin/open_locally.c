/* As an interpreter does: the program itself has no MPI, a module it opens for itself alone has. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int (*run)(int, char**);
  void* module = argc < 2 ? NULL : dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (module == NULL) {
    fprintf(stderr, "%s\n", argc < 2 ? "which module?" : dlerror());
    return 2;
  }
  *(void**)&run = dlsym(module, "RunProgram");
  return run == NULL ? 2 : run(argc - 1, argv + 1);
}
