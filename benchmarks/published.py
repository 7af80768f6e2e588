"""Images per second that MXNet's own publications give (performance guide, v0.9, commit 0a03417), by network and batch.

Machines differ: they are what users remember, not what to be measured against.
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


def figures(row):
    """Machine to images per second for a row of ours, '' where nothing was published; {} for other tasks."""
    table = {"scoring": SCORING, "training": TRAINING}.get(row["task"], {})
    return {machine: dict(zip(BATCHES, by_network.get(row["network"], ()), strict=False)).get(row["batch"], "")
            for machine, by_network in table.items()}
