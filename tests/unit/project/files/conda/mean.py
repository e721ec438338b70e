import sys

import xarray

if __name__ == "__main__":
    print(xarray.open_dataset(sys.argv[1]).mean())
