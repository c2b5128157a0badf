"""`python -m dpassay`."""

from dpassay import main

if __name__ == "__main__":
    raise SystemExit(main())
