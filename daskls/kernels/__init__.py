"""SVM kernels and the compiled numerical code: arrays in, arrays out."""
