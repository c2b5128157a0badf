"""Two laws on a grid that bracket any product of pairs, in floats with proved errors."""
