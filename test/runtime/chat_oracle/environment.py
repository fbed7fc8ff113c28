"""The Jinja of Debian's python3-jinja2 set up as chat templates are rendered elsewhere, and the program
under test behind the same interface."""

import datetime
import functools
import json
import subprocess

import jinja2
from jinja2 import ext, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(ext.Extension):
    """{% generation %} marks what a model is trained to write; rendering writes it like anything else."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_write", []), [], [], body).set_lineno(line)

    def _write(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def make_environment():
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    return environment


ENVIRONMENT = make_environment()


@functools.lru_cache(maxsize=16)
def compiled(template, date):
    extra = {}
    if date is not None:
        extra["strftime_now"] = datetime.datetime.strptime(date, "%Y-%m-%d").strftime
    return ENVIRONMENT.from_string(template, globals=extra)


def expected(template, variables, date=None):
    """What Jinja writes, or the exception that it raises."""
    try:
        return compiled(template, date).render(**variables)
    except Exception as error:
        return error


class Renderer:
    """The program under test, which answers line by line."""

    def __init__(self, command):
        self.process = subprocess.Popen([command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

    def render(self, template, variables, date=None):
        case = {"template": template, "variables": variables}
        if date is not None:
            case["date"] = date
        self.process.stdin.write(json.dumps(case, ensure_ascii=False) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the renderer died of {template!r} with {variables!r}")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            raise RuntimeError(f"the renderer ended with {self.process.returncode}")
