def test_x():
    exec(open("/tmp/hostile_parse.py").read(), {})
