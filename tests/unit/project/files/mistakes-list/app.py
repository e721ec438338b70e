import numpy

print(numpy.zeros(3))
