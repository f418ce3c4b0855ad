"""What all routers of the public API share: who may ask, how errors look, how long lists are."""

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any

import msgspec
from django.core.exceptions import ObjectDoesNotExist
from django.db import DataError
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Field, NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.operation import Operation
from ninja.pagination import LimitOffsetPagination
from ninja.security import APIKeyCookie, HttpBearer
from pydantic import ConfigDict, create_model

from webapp.core.errors import Refusal
from webapp.core.models import ApiToken, Role, User
from webapp.core.tokens import hash_token

MOST_ITEMS = 500
_USED_EVERY = timedelta(minutes=1)  # how exactly it is kept when a token was last used


class Input(Schema):
    """Base of every request body: a field that it does not have is refused by its name, never ignored."""

    model_config = ConfigDict(extra="forbid")


class Problem(Schema):
    """Body of every answer that is an error."""

    code: str
    message: str


class Token(HttpBearer):
    """`Authorization: Bearer` with a person's API token."""

    def authenticate(self, request: HttpRequest, token: str) -> User | None:
        found = ApiToken.objects.select_related("user").filter(
            token_hash=hash_token(token), revoked_at=None, user__is_active=True
        )
        known = found.first()
        if known is None:
            return None
        _touch(known)
        request.user = known.user
        return known.user


def _touch(token: ApiToken) -> None:
    now = timezone.now()
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - _USED_EVERY)
    ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)


class Session(APIKeyCookie):
    """The log-in of the browser. Anything that changes needs Django's CSRF token too."""

    param_name = "sessionid"

    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:  # noqa: ARG002 - Django has read it
        return request.user if isinstance(request.user, User) and request.user.is_active else None


AUTH = (Token(), Session())


def operator(request: HttpRequest) -> User:
    """The person who asks, if their role may change things. Raises Refusal not_allowed."""
    return _with_role(request, Role.OPERATOR)


def administrator(request: HttpRequest) -> User:
    """The person who asks, if they may manage people. Raises Refusal not_allowed."""
    return _with_role(request, Role.ADMIN)


def _with_role(request: HttpRequest, needed: Role) -> User:
    if isinstance(request.user, User) and request.user.has_role(needed):
        return request.user
    has = getattr(request.user, "role", "none")
    raise Refusal("not_allowed", f"Your role is {has}; this needs the role {needed}. An admin can give it to you.")


class Paged(LimitOffsetPagination):
    """`?limit=100&offset=0`; the answer is {items, count}."""

    class Input(Schema):
        limit: int = Field(100, ge=1, le=MOST_ITEMS)
        offset: int = Field(0, ge=0, le=10_000_000)


def add_error_handlers(api: NinjaAPI) -> None:
    """Every error is {code, message}."""
    handlers: dict[type[Exception], Callable[[Any], tuple[int, str, str]]] = {
        Refusal: lambda error: (_status(error.code), error.code, error.message),
        ValidationError: lambda error: (422, "request_refused", _said(error)),
        AuthenticationError: lambda _: (401, "not_logged_in", "Log in, or send Authorization: Bearer <API token>."),
        HttpError: lambda error: (error.status_code, _HTTP_CODES.get(error.status_code, "refused"), str(error)),
        Http404: lambda _: (404, "not_found", "There is no such thing."),
        ObjectDoesNotExist: lambda _: (404, "not_found", "There is no such thing."),
        # JSON can hold both of these, and PostgreSQL's text neither: half of a surrogate pair, and e.g. a NUL
        UnicodeEncodeError: lambda _: (422, "request_refused", "The request holds half of a surrogate pair."),
        DataError: lambda error: (422, "request_refused", f"The request holds what cannot be kept: {error}"),
    }
    for kind, describe in handlers.items():
        api.add_exception_handler(kind, _handler(api, describe))


_HTTP_CODES = {400: "request_refused", 403: "not_allowed", 405: "not_allowed"}


def _handler(
    api: NinjaAPI, describe: Callable[[Any], tuple[int, str, str]]
) -> Callable[[HttpRequest, Any], HttpResponse]:
    def answer(request: HttpRequest, error: Any) -> HttpResponse:
        status, code, message = describe(error)
        return api.create_response(request, {"code": code, "message": message}, status=status)

    return answer


def only_known(run: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorator of an operation: parameters and bodies that it does not take are refused, never ignored."""
    operation: Operation = run.__self__  # type: ignore[attr-defined]  # of a bound method
    sources = {model.__ninja_param_source__: model for model in operation.models}
    reads_address = bool((operation.openapi_extra or {}).get("parameters"))  # and refuses what it does not know
    known = sorted(getattr(sources.get("query"), "__ninja_flatten_map__", ()))

    def problem(request: HttpRequest) -> str:
        unknown = [] if reads_address else [key for key in request.GET if key not in known]
        if unknown:
            there = f"There are {', '.join(known)}." if known else "There are none."
            return f"query.{unknown[0]}: There is no such parameter. {there}"
        is_form = (request.content_type or "").startswith("multipart/")  # has boundaries even when it is empty
        if "body" not in sources and not is_form and request.body.strip() not in _NO_BODY:
            return "body: This operation takes no body. Leave it out."
        return ""

    @wraps(run)
    def checked(request: HttpRequest, **path: Any) -> HttpResponse:
        if words := problem(request):
            return operation.api.on_exception(request, Refusal("request_refused", words))
        return run(request, **path)

    return checked


_NO_BODY = (b"", b"{}", b"null")
_STATUSES = {
    "not_allowed": 403,
    "plan_exists": 409,
    "group_exists": 409,
    "group_in_use": 409,
    "host_unavailable": 409,
    "target_unavailable": 409,
}


def _status(code: str) -> int:
    """Of a refusal: 404 for what is not there, 403 for what one may not, 422 for what cannot be as asked."""
    if code.endswith("_unknown") and not code.startswith("compare_"):
        return 404
    return _STATUSES.get(code, 422)


def _said(error: ValidationError) -> str:
    """`body.targets: Field required; …`."""
    places = [".".join(str(step) for step in dict.fromkeys(one["loc"]) if step != "payload") for one in error.errors]
    return "; ".join(f"{place}: {one['msg']}" for place, one in zip(places, error.errors, strict=True))


def schema_of(kind: type[msgspec.Struct]) -> type[Schema]:
    """A description of a struct for openapi.json. Such answers are sent with `json_of`."""
    hints = {field.name: _described(field.type) for field in msgspec.structs.fields(kind)}
    made: type[Schema] = create_model(kind.__name__, __base__=Schema, __doc__=kind.__doc__, **_fields(hints))
    return made


def _fields(hints: dict[str, Any]) -> dict[str, Any]:
    return {name: (hint, ...) for name, hint in hints.items()}


def _described(hint: Any) -> Any:
    """The hint with structs replaced by their descriptions, inside tuples and unions too."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return schema_of(hint)
    parts = getattr(hint, "__args__", None)
    if not parts:
        return hint
    described = tuple(_described(part) for part in parts)
    if getattr(hint, "__origin__", None) is tuple:
        return tuple[described]  # type: ignore[valid-type]
    union = described[0]
    for part in described[1:]:
        union |= part
    return union


def json_of(struct: msgspec.Struct) -> HttpResponse:
    """The struct as it is, without another validation."""
    return HttpResponse(msgspec.json.encode(struct), content_type="application/json")
