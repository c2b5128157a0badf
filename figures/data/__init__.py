"""The data of the case studies: loaders of the original files, and stand-ins for them."""
