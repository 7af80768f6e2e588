import pytest

import mxnet as mx


class Animal:
    def __init__(self, legs=4):
        self.legs = legs


register = mx.registry.get_register_func(Animal, "animal")
alias = mx.registry.get_alias_func(Animal, "animal")
create = mx.registry.get_create_func(Animal, "animal")


@register
@alias("hound", "Puppy")
class Dog(Animal):
    pass


@pytest.mark.parametrize("args, kwargs", [
    (("dog", 3), {}), (("DOG",), {"legs": 3}), (("puppy",), {"legs": 3}), ((), {"animal": "hound", "legs": 3}), (('["dog", {"legs": 3}]',), {}),
    (('{"animal": "dog", "legs": 3}',), {}), (({"animal": "dog", "legs": 3},), {})])
def test_create(args, kwargs):
    made = create(*args, **kwargs)
    assert type(made) is Dog and made.legs == 3


def test_objects_pass():
    dog = Dog()
    assert create(dog) is dog
    with pytest.raises(ValueError, match="no further arguments are allowed beside the animal"):
        create(dog, 3)
    with pytest.raises(ValueError, match="no further arguments"):
        create('["dog", {}]', legs=2)


def test_unknown():
    with pytest.raises(ValueError, match="there is no animal named 'cat'; decorate its class with animal.register; registered: dog, hound, puppy"):
        create("cat")
    with pytest.raises(TypeError, match="animal must be a string or a Animal, received 3"):
        create(3)
    with pytest.raises(TypeError, match="`animal` is missing"):
        create(legs=3)
    with pytest.raises(TypeError, match="can only register subclasses of Animal as animal"):
        register(int)


def test_registering_twice_warns():
    class Bird(Animal):
        pass

    class OtherBird(Animal):
        pass

    register(Bird)
    with pytest.warns(UserWarning, match="OtherBird registered with name bird is overriding existing animal"):
        register(OtherBird, "bird")
    assert mx.registry.get_registry(Animal)["bird"] is OtherBird
    mx.registry.get_registry(Animal).clear()
    assert create("dog").legs == 4
