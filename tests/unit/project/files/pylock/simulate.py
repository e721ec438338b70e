import numpy
from tqdm import tqdm

for step in tqdm(range(3)):
    print(step, numpy.arange(3).sum())
