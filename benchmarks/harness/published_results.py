"""Images per second that MXNet's own publications give (performance guide, v0.9, commit 0a03417), by network and batch.

They were measured on other machines, and are shown for orientation only.
"""
BATCHES = (1, 2, 4, 8, 16, 32)

SCORING = {
    "C4.8xlarge": {  # two Xeon E5-2666 v3, MKL2017
        "alexnet": (122.21, 224.83, 295.87, 389.08, 519.87, 626.25), "vgg16": (34.23, 51.02, 65.88, 77.78, 85.08, 87.63),
        "inception-bn": (99.24, 138.88, 185.46, 212.96, 222.81, 221.66), "inception-v3": (52.16, 66.76, 76.70, 84.00, 85.10, 84.36),
        "resnet50": (46.03, 52.27, 67.45, 69.26, 68.94, 67.69), "resnet152": (20.11, 24.82, 28.16, 29.70, 29.11, 28.70)},
    "P100": {
        "alexnet": (624.84, 1226.85, 1934.97, 2900.54, 4063.70, 4883.77), "vgg16": (294.6, 282.3, 399.3, 522.9, 755.3, 854.4),
        "inception-bn": (139.82, 267.41, 463.38, 709.30, 949.22, 1197.74), "inception-v3": (80.17, 142.63, 225.56, 319.52, 444.65, 493.72),
        "resnet50": (162.27, 278.02, 423.63, 529.34, 647.43, 713.17), "resnet152": (58.99, 102.95, 168.91, 210.10, 270.07, 294.17)},
}

TRAINING = {  # AlexNet's batch was 8 times the row's: its figures are left out
    "K80": {"inception-v3": (9.81, 15.31, 20.48, 24.47, 28.46, 29.62), "resnet50": (13.83, 21.85, 29.58, 36.83, 43.60, 45.52)},
    "P100": {"inception-v3": (15.14, 30.34, 50.59, 77.75, 111.11, 129.98), "resnet50": (27.20, 49.55, 78.31, 122.45, 156.79, 181.53)},
}

# Speed-up over MXNet 1.5 without MKL-DNN, by network: (float32, INT8) for each of the batches, on an EC2 C5.24xlarge (Xeon with VNNI, 48 cores).
SPEEDUP_BATCHES = (*BATCHES, 64)
SPEEDUPS = {
    "resnet18": ((11.75, 26.86), (15.20, 43.60), (19.67, 61.10), (23.00, 76.63), (24.80, 86.81), (25.68, 91.61), (26.13, 95.77)),
    "resnet50": ((9.32, 26.50), (11.87, 38.91), (16.07, 52.83), (18.83, 65.03), (19.92, 73.87), (19.92, 81.63), (20.67, 82.01)),
    "mobilenet": ((19.50, 35.07), (26.21, 55.70), (36.11, 83.26), (46.29, 108.58), (49.47, 133.10), (48.44, 143.82), (47.89, 148.83)),
    "mobilenetv2": ((13.15, 34.14), (20.78, 61.53), (30.00, 104.80), (39.51, 160.60), (42.71, 205.18), (42.06, 217.07), (42.19, 225.92)),
    "resnet101": ((9.50, 22.91), (12.42, 30.73), (16.03, 42.36), (18.31, 58.12), (19.56, 71.00), (20.22, 80.41), (20.73, 82.89)),
    "squeezenet": ((5.68, 18.16), (9.01, 29.41), (13.61, 44.14), (17.22, 58.81), (18.54, 67.53), (17.32, 70.43), (16.63, 69.44)),
    "inception-v3": ((11.25, 25.70), (13.59, 41.41), (19.26, 57.45), (23.50, 76.14), (25.30, 92.72), (25.54, 103.10), (25.40, 108.13)),
    "resnet152v2": ((7.88, 9.86), (9.55, 12.02), (11.94, 15.46), (14.09, 18.01), (15.66, 21.02), (16.12, 21.43), (16.57, 19.53)),
}
# The same for layers of LSTM over 50 steps: {(units, batch, layers): speed-up}.
RECURRENT_SPEEDUPS = {(512, 1, 8): 7.82, (512, 1, 4): 10.49, (1024, 1, 8): 13.21, (1024, 1, 4): 13.07,
                      (512, 32, 8): 15.57, (512, 32, 4): 14.99, (1024, 32, 8): 10.71, (1024, 32, 4): 10.72}


def figures(row):
    """Return {machine: images per second} for a row, '' where nothing was published; {} for other tasks."""
    table = {"scoring": SCORING, "training": TRAINING}.get(row["task"], {})
    return {machine: dict(zip(BATCHES, by_network.get(row["network"], ()), strict=False)).get(row["batch"], "")
            for machine, by_network in table.items()}
