"""What pytest leaves out: the kernels of a GPU where Triton is not there to read them."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("triton") else ["src/tabon/encoders/torch_engine/gpu_kernels.py"]
