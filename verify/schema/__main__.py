"""Write the schemas from the types that they describe."""

from pathlib import Path

from dpassay.verifier.schema import generate, text

if __name__ == "__main__":
    for name, schema in generate().items():
        (Path(__file__).parent / name).write_text(text(schema), "utf-8")
