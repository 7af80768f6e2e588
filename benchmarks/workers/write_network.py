"""Write a network's parameters for the other libraries. usage: write_network.py networks|train_models NAME FOLDER"""
import importlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

if __name__ == "__main__":
    module, name, folder = sys.argv[1:]
    importlib.import_module(f"harness.{module}").write(name, folder)
