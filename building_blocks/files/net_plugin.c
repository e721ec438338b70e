/* Loads a network plugin of NCCL as NCCL does, and prints what it calls itself by each interface that it has. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    char symbol[32];
    int version, found = 0;
    void *plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

    if (plugin == NULL) {
        fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: net_plugin LIBRARY");
        return 1;
    }
    for (version = 4; version <= 20; version++) {
        const char *const *name;

        snprintf(symbol, sizeof symbol, "ncclNetPlugin_v%d", version);
        /* The name is what each of these structures begins with. */
        name = dlsym(plugin, symbol);
        if (name != NULL) {
            printf("%s: %s\n", symbol, *name);
            found = 1;
        }
    }
    return !found;
}
