#!/bin/bash
#SBATCH -N 4 -n 192
#SBATCH -t 90
for step in prepare solve; do
    srun ./build/bin/waves --mode $step in.waves
done
