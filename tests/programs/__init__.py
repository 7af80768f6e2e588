"""Programs that use the API the way people do, each with a result that shows learning. Those of the 1.x style run on MXNet 1.9.1, too."""
