"""Orders of the server and how each kind is carried out."""
