def pytest_configure(config):
    config.addinivalue_line("markers", "slow: runs in make test-slow only")
