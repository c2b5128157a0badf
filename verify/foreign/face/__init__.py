"""The folder of which `dpassay` takes submodules: `import dpassay.integrations.opacus`.

What lies here only passes names on: loaded as a part of `dpassay` it is a second module.
"""
