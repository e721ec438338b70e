"""Synthetic showers of particles in a calorimeter of 25 x 25 x 25 cells, as an HDF5 file.

    make_showers.py FILE COUNT [SEED]

ECAL [COUNT, 25, 25, 25] is the energy that each cell took, target [COUNT, 2] the depth of the shower's maximum and the
energy of the particle in GeV. The names and shapes are those that programs for the calorimeter data of CERN's 3DGAN
read. The same count and seed give the same numbers everywhere.
"""

import sys

import h5py
import numpy as np

CELLS = 25
TAKEN = 0.02  # of the particle's energy, roughly what such data has
PIECE = 256


def showers(count, seed):
    """Cells and targets of some showers: a maximum in depth, and a core that widens behind it."""
    random = np.random.RandomState(seed)
    energy = random.uniform(10.0, 500.0, count)
    depth = 5.0 + np.log(energy) + random.normal(0.0, 0.6, count)
    centre = 12.0 + random.normal(0.0, 0.4, (count, 2))
    z = np.arange(CELLS)[None, :] + 0.5
    along = (z / depth[:, None]) ** 4 * np.exp(4.0 * (1.0 - z / depth[:, None]))
    width = 1.0 + 0.08 * z
    place = np.arange(CELLS)[None, :, None]
    x, y = (np.exp(-(((place - centre[:, axis, None, None]) / width) ** 2) / 2) for axis in (0, 1))
    cells = x[:, :, None, :] * y[:, None, :, :] * along[:, None, None, :]
    cells *= random.gamma(4.0, 0.25, cells.shape)
    cells *= (TAKEN * energy / cells.sum(axis=(1, 2, 3)))[:, None, None, None]
    return cells.astype("f4"), np.stack([depth, energy], axis=1).astype("f4")


def write(path, count, seed=0):
    """The file, piece by piece, so that it may be larger than memory."""
    with h5py.File(path, "w", libver="earliest") as file:
        cells = file.create_dataset("ECAL", (count, CELLS, CELLS, CELLS), "f4")
        target = file.create_dataset("target", (count, 2), "f4")
        for begin in range(0, count, PIECE):
            end = min(count, begin + PIECE)
            cells[begin:end], target[begin:end] = showers(end - begin, seed + begin)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    write(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) == 4 else 0)
