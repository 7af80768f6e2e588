"""Constants of color operators: the luma weights of the primaries, and the statistics of ImageNet."""

# The weights of red, green and blue in the brightness of a colour (ITU-R BT.601).
LUMA = (0.299, 0.587, 0.114)

# Brightness and two axes of colour (YIQ) from red, green and blue, and back; hues turn about the first axis.
TO_YIQ = (LUMA, (0.596, -0.274, -0.321), (0.211, -0.523, 0.311))
FROM_YIQ = ((1.0, 0.956, 0.621), (1.0, -0.272, -0.647), (1.0, -1.107, 1.705))

# ImageNet: mean and deviation of red, green and blue, as bytes.
MEAN = (123.68, 116.28, 103.53)
STD = (58.395, 57.12, 57.375)

# The principal components of its colours, in columns, and their deviations (Krizhevsky et al. 2012).
EIGENVECTORS = ((-0.5675, 0.7192, 0.4009), (-0.5808, -0.0045, -0.8140), (-0.5836, -0.6948, 0.4203))
EIGENVALUES = (55.46, 4.794, 1.148)
