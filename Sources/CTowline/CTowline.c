#include "CTowline.h"
