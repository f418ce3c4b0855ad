"""The one settings module; everything that differs between installations comes from the environment."""

from pathlib import Path

from webapp.settings import environment as env
from webapp.settings.logs import LOGGING as LOGGING

BASE_DIR = Path(__file__).resolve().parent.parent.parent

SECRET_KEY = env.text("SWEETSPOT_SECRET_KEY")
DEBUG = env.flag("SWEETSPOT_DEBUG")
ALLOWED_HOSTS = env.words("SWEETSPOT_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.words("SWEETSPOT_TRUSTED_ORIGINS")
# What workers and the pasted "add host" line use to reach this server.
PUBLIC_URL = env.text("SWEETSPOT_PUBLIC_URL", "http://127.0.0.1:8000").rstrip("/")
# False only where everything stays on loopback, as in the demo.
HTTPS = env.flag("SWEETSPOT_HTTPS", default=PUBLIC_URL.startswith("https://"))

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.humanize",
    "django.contrib.postgres",
    "django.contrib.staticfiles",
    "django_celery_beat",
    "ninja",
    "webapp.core",
    "webapp.hosts",
    "webapp.plans",
    "webapp.runs",
    "webapp.results",
    "webapp.imports",
    "webapp.analysis",
    "webapp.trends",
    "webapp.notices",
    "webapp.schedules",
    "webapp.storage",
    "webapp.screens",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "webapp.core.middleware.browser_limits",
    "webapp.core.middleware.json_errors",
    "webapp.core.middleware.refuse_nul",
    "webapp.core.middleware.RefusedValues",
    "webapp.core.middleware.viewers_time_zone",
    "webapp.core.middleware.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "webapp.core.external_login.ProxyLogin",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "webapp.urls"
WSGI_APPLICATION = "webapp.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

DATABASES = {"default": env.database("SWEETSPOT_DATABASE_URL")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "core.User"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

# Log-in by an identity provider (OpenID Connect) or by a proxy; docs/how-to/log-in.md. Local accounts stay.
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "webapp.core.oidc.OidcBackend",
    "webapp.core.external_login.ProxyBackend",
]
LOGIN_ROLES = env.roles("SWEETSPOT_LOGIN_ROLES", known=("viewer", "operator", "admin"))  # by group; * for everybody
EXTERNAL_SESSION_SECONDS = env.number("SWEETSPOT_EXTERNAL_SESSION_SECONDS", 12 * 3600)
PROXY_USER_HEADER = env.header("SWEETSPOT_PROXY_USER_HEADER")
PROXY_GROUPS_HEADER = env.header("SWEETSPOT_PROXY_GROUPS_HEADER")
PROXY_ADDRESSES, PROXY_SOCKET = env.networks_or_socket("SWEETSPOT_PROXY_ADDRESSES")
OIDC_ISSUER = env.text("SWEETSPOT_OIDC_ISSUER", "").rstrip("/")
OIDC_RP_CLIENT_ID = env.text("SWEETSPOT_OIDC_CLIENT_ID", "")
OIDC_RP_CLIENT_SECRET = env.text("SWEETSPOT_OIDC_CLIENT_SECRET", "")
OIDC_RP_SCOPES = env.text("SWEETSPOT_OIDC_SCOPES", "openid profile")
OIDC_RP_SIGN_ALGO = env.text("SWEETSPOT_OIDC_ALGORITHM", "RS256")
OIDC_NAME_CLAIM = env.text("SWEETSPOT_OIDC_NAME_CLAIM", "preferred_username")
OIDC_GROUPS_CLAIM = env.text("SWEETSPOT_OIDC_GROUPS_CLAIM", "groups")
OIDC_VERIFY_SSL = env.text("SWEETSPOT_OIDC_CA", "") or True  # a file of certificates
OIDC_USE_PKCE = True
OIDC_TIMEOUT = 10  # s
OIDC_AUTHENTICATION_CALLBACK_URL = "oidc_callback"

PASSWORD_RESET_TIMEOUT = 24 * 3600  # s that a set-password link is good for

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = env.text("SWEETSPOT_STATIC_ROOT", str(BASE_DIR / ".build" / "static"))
# Vite writes here; not committed.
FRONTEND_BUILD = BASE_DIR / ".build" / "frontend"
STATICFILES_DIRS = [FRONTEND_BUILD] if FRONTEND_BUILD.is_dir() else []
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    # Vite puts a hash of the content into every name, so plain storage is enough.
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = True
# `make docs` writes the documentation to the folder `docs` in it.
SITE = BASE_DIR / ".build" / "site"
WHITENOISE_ROOT = SITE if SITE.is_dir() else None
WHITENOISE_INDEX_FILE = True

CSRF_FAILURE_VIEW = "webapp.screens.access.form_out_of_date"
SESSION_ENGINE = "webapp.core.sessions"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz"]  # a probe on the machine itself speaks plain HTTP
# Behind a proxy that sets X-Forwarded-Proto and appends to X-Forwarded-For.
BEHIND_PROXY = env.flag("SWEETSPOT_BEHIND_PROXY")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_PROXY else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 16 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 20_000  # a plan of 50 parts with 200 factors each, two fields a factor

# The broker: orders go to hosts, and this server's own periodic tasks run from it.
REDIS_URL = env.broker("SWEETSPOT_REDIS_URL")
# The broker as hosts reach it, where that differs. Each host has a user of its own there.
WORKER_REDIS_URL = env.broker_address("SWEETSPOT_WORKER_REDIS_URL", REDIS_URL)
# The private authority of the server's certificate, which the commands for new hosts and clients bring along.
AUTHORITY = env.existing_file("SWEETSPOT_AUTHORITY")
BROKER_TLS = env.broker_tls(REDIS_URL, ca_file=env.existing_file("SWEETSPOT_REDIS_CA"))

CELERY_BROKER_URL = REDIS_URL
CELERY_BROKER_USE_SSL = BROKER_TLS
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "server"
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {"priority_steps": [0], "socket_connect_timeout": 3, "socket_timeout": 5}
# Publishing happens after a commit, in a request: fail fast, the beat publishes again.
CELERY_TASK_PUBLISH_RETRY = False
CELERY_BEAT_SCHEDULER = "webapp.beat:Scheduler"
CELERY_TIMEZONE = "UTC"

# Rules of the house (s).
LEASE_SECONDS = env.number("SWEETSPOT_LEASE_SECONDS", 900)  # longer than the outages that are tolerated
ORDER_EXPIRES_SECONDS = env.number("SWEETSPOT_ORDER_EXPIRES_SECONDS", 300)
PAUSE_RESTORE_SECONDS = env.number("SWEETSPOT_PAUSE_RESTORE_SECONDS", 60)  # a paused run keeps its settings so long
REPUBLISH_SECONDS = env.number("SWEETSPOT_REPUBLISH_SECONDS", 10)  # an order not accepted by then goes out again
ENROLMENT_SECONDS = 3600
# Samples of runs that ended longer ago are thinned out; 0: never (days).
SAMPLE_DAYS = env.number("SWEETSPOT_SAMPLE_DAYS", 90)
# Runs that ended longer ago are deleted; 0: never (days). By plan, if a plan has days of its own.
RUN_DAYS = env.days("SWEETSPOT_RUN_DAYS")
RUN_DAYS_OF_PLANS = env.days_by_name("SWEETSPOT_RUN_DAYS_OF_PLANS")
# Changes of state of the trials of runs that ended longer ago are deleted; 0: never (days).
TRANSITION_DAYS = env.number("SWEETSPOT_TRANSITION_DAYS", 365)
# A directory on the disk of the database, whose free space the page Storage shows; "": unknown.
DATABASE_DISK = env.text("SWEETSPOT_DATABASE_DISK", "")
ARMING_SECONDS = 3600

# What Prometheus sends; without it, /metrics is for loopback alone.
METRICS_TOKEN = env.text("SWEETSPOT_METRICS_TOKEN", "")

# Files of certificates whose end /metrics and /healthz show.
CERTIFICATES = env.words("SWEETSPOT_CERTIFICATES")

# Notices: e-mail needs both settings; webhooks reach internal addresses only in the networks listed.
_MAIL_SERVER = env.mail_server("SWEETSPOT_SMTP_URL")
EMAIL_HOST = _MAIL_SERVER.host
EMAIL_PORT = _MAIL_SERVER.port
EMAIL_HOST_USER = _MAIL_SERVER.user
EMAIL_HOST_PASSWORD = _MAIL_SERVER.password
EMAIL_USE_TLS = _MAIL_SERVER.starttls
EMAIL_USE_SSL = _MAIL_SERVER.tls
EMAIL_TIMEOUT = 10  # s
DEFAULT_FROM_EMAIL = env.mail_from("SWEETSPOT_MAIL_FROM", needed=bool(EMAIL_HOST))
WEBHOOK_NETWORKS = env.networks("SWEETSPOT_WEBHOOK_NETWORKS")
