"""The messages that server and worker exchange. Imports nothing else of ours.

Orders go to a host signed, over Celery; reports come back over HTTP.
Every message is a frozen msgspec struct that refuses unknown fields.
`docs/reference/message-contract.md` shows an example of each.
"""
