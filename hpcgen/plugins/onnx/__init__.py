"""Trained models converted to ONNX inside an image, validated, made fast, and run on the target."""
