/* A Slurm plugin that knows the options of pyxis 0.24 that job scripts use, and says which srun was given. It starts no
 * container: pyxis and enroot are not in Debian. */
#include <slurm/spank.h>
#include <stdio.h>

SPANK_PLUGIN(pyxis_options, 1)

static const char *const names[] = {"container-image", "container-mounts", "container-workdir",
                                    "no-container-mount-home", "no-container-entrypoint"};

static int take(int value, const char *argument, int remote)
{
    if (!remote)
        fprintf(stderr, "pyxis: %s %s\n", names[value], argument ? argument : "");
    return ESPANK_SUCCESS;
}

static struct spank_option options[] = {
    {"container-image", "IMAGE", "", 1, 0, take},
    {"container-mounts", "SRC:DST", "", 1, 1, take},
    {"container-workdir", "PATH", "", 1, 2, take},
    {"no-container-mount-home", NULL, "", 0, 3, take},
    {"no-container-entrypoint", NULL, "", 0, 4, take},
};

int slurm_spank_init(spank_t spank, int argc, char *argv[])
{
    (void)argc;
    (void)argv;
    for (unsigned i = 0; i < sizeof options / sizeof options[0]; i++)
        if (spank_option_register(spank, &options[i]) != ESPANK_SUCCESS)
            return ESPANK_ERROR;
    return ESPANK_SUCCESS;
}
