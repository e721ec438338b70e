/* A Slurm plugin that knows one option, --ear=on|off, and does nothing with it: what EAR's own plugin adds to sbatch
 * on the systems that have it. Without it a stock Slurm refuses their job scripts. */
#include <slurm/spank.h>

SPANK_PLUGIN(ear_option, 1)

static int take(int value, const char *argument, int remote)
{
    (void)value;
    (void)argument;
    (void)remote;
    return ESPANK_SUCCESS;
}

static struct spank_option ear = {"ear", "on|off", "energy aware run time, on or off", 1, 0, take};

int slurm_spank_init(spank_t spank, int argc, char *argv[])
{
    (void)argc;
    (void)argv;
    return spank_option_register(spank, &ear);
}
