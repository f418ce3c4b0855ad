"""Charts as SVG, drawn on the server: in files, in printed pages, in other pages, and the small ones of lists."""
