"""AMP switched off after a test; MXNet has no call for it."""
from mxnet.contrib.amp import amp

state = amp._State


def switch_off():
    """Undo `amp.init`, if it was called."""
    if state.installation is not None:
        state.installation.undo()
    state.installation = None
