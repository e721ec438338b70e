# Settings of the invented cluster Aurelia, as ReFrame 4 reads them.
site_configuration = {
    "systems": [
        {
            "name": "aurelia",
            "descr": "Aurelia, EPYC and A100",
            "hostnames": [r"aurelia-login\d+"],
            "modules_system": "lmod",
            "partitions": [
                {
                    "name": "login",
                    "scheduler": "local",
                    "launcher": "local",
                    "environs": ["builtin"],
                },
                {
                    "name": "cpu",
                    "descr": "nodes without GPUs",
                    "scheduler": "slurm",
                    "launcher": "srun",
                    "access": ["-p batch", "--account=aur0001", "--exclusive"],
                    "environs": ["gnu"],
                    "processor": {
                        "arch": "zen3",
                        "num_cpus": 256,
                        "num_cpus_per_core": 2,
                        "num_sockets": 2,
                        "topology": {"numa_nodes": ["0x1", "0x2", "0x4", "0x8", "0x10", "0x20", "0x40", "0x80"]},
                    },
                    "container_platforms": [{"type": "Apptainer", "modules": ["apptainer/1.3.4"]}],
                },
                {
                    "name": "GPU.a100",
                    "scheduler": "slurm",
                    "launcher": "srun",
                    "access": ["--partition=gpu"],
                    "environs": ["gnu"],
                    "processor": {"arch": "zen3", "num_cpus": 64, "num_cpus_per_core": 1, "num_sockets": 1},
                    "devices": [{"type": "gpu", "arch": "sm_80", "model": "A100 SXM4 40GB", "num_devices": 4}],
                },
            ],
        }
    ],
    "environments": [
        {"name": "builtin", "target_systems": ["*"]},
        {"name": "gnu", "modules": ["gcc/12.3.0", "openmpi/4.1.6"], "target_systems": ["aurelia"]},
    ],
}
