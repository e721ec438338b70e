"""``hpcgen onnx``."""
