"""Requests in, responses out.

Lives here: the services by subject, how they are offered, and messages used in place.
Comes in: `robot`, and the modules of `node` itself.
Used from outside: `advertise.advertise`, by the node; `in_place.for_client`, by controllers.
"""

from pkgutil import extend_path

# The compiled module lies in the installed package, also when this is the source tree.
__path__ = extend_path(__path__, __name__)
