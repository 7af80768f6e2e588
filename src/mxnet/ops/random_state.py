"""The random generators: one a device, seeded by ``mx.random.seed``."""
import threading

import torch

_generators: dict = {}
_lock = threading.Lock()
_simulated = threading.local()  # which cpu(i) is computing, set by whoever runs operators there


def generator(device):
    """The torch generator that operators on `device` draw from; None for the meta device, where nothing is drawn."""
    if device.type == "meta":
        return None
    key = (device.type, device.index or 0) if device.type != "cpu" else ("cpu", getattr(_simulated, "index", 0))
    found = _generators.get(key)
    if found is None:
        with _lock:
            found = _generators.get(key)
            if found is None:
                found = _generators[key] = torch.Generator(device=device)
                found.seed()
    return found


def use_cpu(index):
    """Draw from the generator of ``cpu(index)`` in this thread from now on; returns the one used before."""
    before = getattr(_simulated, "index", 0)
    _simulated.index = index
    return before


def seed(value, device_type="all", index=0):
    """Seed the generator of one device (torch's name of its type, and its number), or of all of them."""
    if device_type != "all":
        if device_type == "cpu":
            before = use_cpu(index)
            generator(torch.device("cpu")).manual_seed(value)
            use_cpu(before)
        else:
            generator(torch.device(device_type, index)).manual_seed(value)
        return
    generator(torch.device("cpu"))
    for i in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        generator(torch.device("cuda", i))
    for (_, i), g in list(_generators.items()):
        g.manual_seed((value + i) % 2 ** 64)  # devices draw different numbers from one seed
