"""The OpenAPI document that the console's types are made from: `python -m docs.openapi_document > FILE`."""

import json
import sys

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from outlast import Outlast
from outlast.api import create_app


def main() -> None:
    document = create_app(Outlast(Agent(TestModel(), name="agent"), database="reference.db")).openapi()
    # Examples are for people; a version would make the types change with every release.
    document["info"]["version"] = "0"
    json.dump(document, sys.stdout, indent=1, sort_keys=True)


if __name__ == "__main__":
    main()
